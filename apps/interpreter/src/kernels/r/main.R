# Starts the R kernel: `R --file=main.R --args REQUESTS_FD ANSWERS_FD`.

suspendInterrupts(local({
  program <- grep("^--file=", commandArgs(), value = TRUE)[1]
  folder <- dirname(sub("^--file=", "", program))
  fds <- commandArgs(trailingOnly = TRUE)
  # User code neither sees nor replaces what the kernel uses.
  kernel <- new.env(parent = baseenv())
  for (name in c("answers.R", "data-frame.R", "evaluate.R", "plots.R", "results.R", "serve.R", "variables.R")) {
    sys.source(file.path(folder, name), kernel)
  }
  kernel$serve(fds[1], fds[2])
}))
