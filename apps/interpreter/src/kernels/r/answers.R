# Answers of the kernel: one JSON line each.

# The server reads lines of up to twice this size.
largest_result_bytes <- 32 * 1024 * 1024

open_answers <- function(fd) {
  connection <- file(file.path("/proc/self/fd", fd), "wb", raw = TRUE)
  send_line <- function(line) {
    suspendInterrupts({
      writeLines(line, connection, useBytes = TRUE)
      flush(connection)
    })
  }
  send <- function(message) send_line(to_json(message))
  list(
    send = send,
    send_error = function(name, value, traceback) {
      send(list(type = "error", name = clean(name), value = clean(value), traceback = clean(traceback)))
    },
    # `bundle` has JSON texts by media type.
    send_result = function(bundle, is_main) {
      bundle <- drop_too_large(bundle)
      fields <- paste0(to_json_strings(names(bundle)), ":", unlist(bundle), collapse = ",")
      send_line(paste0('{"type":"result","is_main":', to_json(is_main), ',"data":{', fields, "}}"))
    }
  )
}

# Drops formats, largest first, until the rest fits into one message.
drop_too_large <- function(bundle) {
  sizes <- vapply(bundle, nchar, 0L, type = "bytes")
  while (sum(sizes) > largest_result_bytes) {
    largest <- which.max(sizes)
    cat("The result is too large as ", names(bundle)[largest], " (", sizes[largest], " bytes): left out.\n", sep = "")
    bundle <- bundle[-largest]
    sizes <- sizes[-largest]
  }
  bundle
}

# Single values become scalars, NA, NaN and infinity null.
to_json <- function(value) {
  unclass(jsonlite::toJSON(value, auto_unbox = TRUE, null = "null", na = "null", digits = NA))
}

to_json_strings <- function(texts) vapply(texts, function(text) to_json(clean(text)), "", USE.NAMES = FALSE)

# Replaces bytes that are no text.
clean <- function(text) iconv(enc2utf8(text), "UTF-8", "UTF-8", sub = "byte")
