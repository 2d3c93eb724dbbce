# Kernel loop: reads requests, runs their code, writes answers. Interrupts are suspended except while user code runs.

# More empty reads in a row than a resumed sandbox causes mean that the server has gone.
most_empty_reads <- 100

serve <- function(requests_fd, answers_fd) {
  answers <- open_answers(answers_fd)
  plots <- watch_plots(answers)
  # Warnings appear when they arise: the code of a kernel never returns to R's own prompt, which shows them otherwise.
  options(warn = 1)
  add_user_library()
  answers$send(list(type = "ready"))
  read_requests(requests_fd, function(request) {
    execute(request, answers)
    plots$send()
    answers$send(list(type = "done"))
  })
}

# Calls `handle` with each request. Returns at the end of the requests.
read_requests <- function(fd, handle) {
  # Raw: R reads ahead in other files to see whether they are compressed.
  requests <- file(file.path("/proc/self/fd", fd), "rb", raw = TRUE)
  line <- ""
  empty_reads <- 0
  while (empty_reads < most_empty_reads) {
    # A read returns early, with part of a line or without any, when the sandbox is resumed.
    part <- suppressWarnings(readLines(requests, 1, warn = FALSE, encoding = "UTF-8"))
    empty_reads <- if (length(part) == 0) empty_reads + 1 else 0
    line <- paste0(line, part, collapse = "")
    if (!jsonlite::validate(line)) next
    request <- jsonlite::fromJSON(line, simplifyVector = FALSE)
    line <- ""
    handle(request)
  }
}

execute <- function(request, answers) {
  set_variables(request$sandbox_variables)
  restore <- set_variables(request$variables)
  # The signal that ended the code before may have come too late for it.
  tryCatch(allowInterrupts(NULL), interrupt = function(condition) NULL)
  tryCatch(
    allowInterrupts(evaluate(request$code, answers)),
    interrupt = function(condition) answers$send_error("interrupt", "The code was interrupted.", "")
  )
  restore()
}

# `install.packages` writes to the library of the user, which must exist when R looks for its libraries.
add_user_library <- function() {
  folder <- Sys.getenv("R_LIBS_USER")
  if (nzchar(folder) && dir.create(folder, showWarnings = FALSE, recursive = TRUE)) .libPaths(c(folder, .libPaths()))
}
