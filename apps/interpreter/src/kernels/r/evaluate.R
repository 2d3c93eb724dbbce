# Runs the code of one request, expression by expression, as R's own prompt does.

# Functions between `evaluate_expression` and user code: withCallingHandlers, withVisible, and eval twice.
own_frames <- 4
most_calls <- 50
# The call that conditions of top-level code name.
own_call <- quote(eval(expression, globalenv()))

evaluate <- function(code, answers) {
  expressions <- tryCatch(parse(text = code, keep.source = TRUE), error = function(problem) {
    # The name that R has since 4.3.
    answers$send_error("parseError", conditionMessage(problem), conditionMessage(problem))
    NULL
  })
  calls <- list()
  tryCatch(
    for (index in seq_along(expressions)) {
      evaluate_expression(expressions[[index]], is_last = index == length(expressions), answers, function(found) calls <<- found)
    },
    error = function(problem) {
      answers$send_error(class(problem)[1], conditionMessage(problem), format_traceback(problem, calls))
    }
  )
}

# Calls `on_error` with the calls that led to an error, since they are gone when the error is caught.
evaluate_expression <- function(expression, is_last, answers, on_error) {
  depth <- sys.nframe() + own_frames
  withCallingHandlers(
    {
      result <- withVisible(eval(expression, globalenv()))
      if (result$visible) send_value(result$value, is_last, answers)
    },
    error = function(problem) on_error(user_calls(sys.calls(), depth)),
    warning = function(problem) {
      if (!identical(conditionCall(problem), own_call) || getOption("warn") != 1) return()
      cat("Warning: ", conditionMessage(problem), "\n", sep = "", file = stderr())
      tryInvokeRestart("muffleWarning")
    }
  )
}

# Returns the calls of user code: without those of the kernel and without those of the handler.
user_calls <- function(calls, depth) {
  calls <- utils::head(calls, -1)
  if (length(calls) > 0 && identical(calls[[length(calls)]][[1]], as.name(".handleSimpleError"))) {
    calls <- utils::head(calls, -1)
  }
  utils::tail(calls, -depth)
}

format_traceback <- function(problem, calls) {
  call <- conditionCall(problem)
  place <- if (is.null(call) || identical(call, own_call)) "" else paste0(" in ", format_call(call))
  lines <- sprintf("%d. %s", seq_along(calls), vapply(calls, format_call, ""))
  if (length(lines) > most_calls) {
    lines <- c(utils::head(lines, most_calls / 2), "...", utils::tail(lines, most_calls / 2))
  }
  heading <- if (length(lines) > 0) "Traceback:"
  paste(c(paste0("Error", place, ": ", conditionMessage(problem)), heading, lines), collapse = "\n")
}

format_call <- function(call) {
  lines <- deparse(call, nlines = 2)
  if (length(lines) > 1) paste(lines[1], "...") else lines
}
