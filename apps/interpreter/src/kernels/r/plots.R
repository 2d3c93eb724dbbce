# Plots become results: PNG files that the default graphics device writes, one for each page.

watch_plots <- function(answers) {
  device <- NULL
  folders <- character()
  # The options are those of R's Jupyter kernel.
  open_device <- function(...) {
    folder <- tempfile("plots-")
    dir.create(folder, recursive = TRUE)
    grDevices::png(
      file.path(folder, "%06d.png"),
      width = getOption("repr.plot.width", 7), height = getOption("repr.plot.height", 7), units = "in",
      res = getOption("repr.plot.res", 120), type = "cairo"
    )
    device <<- grDevices::dev.cur()
    folders <<- c(folders, folder)
  }
  options(device = open_device)
  list(send = function() {
    # Closing the device completes the last page.
    if (!is.null(device) && device %in% grDevices::dev.list()) grDevices::dev.off(device)
    pages <- list.files(folders, full.names = TRUE)
    for (page in pages) {
      picture <- readBin(page, "raw", file.size(page))
      encoded <- gsub("\n", "", jsonlite::base64_enc(picture), fixed = TRUE)
      answers$send_result(list("image/png" = to_json(encoded)), is_main = FALSE)
    }
    unlink(folders, recursive = TRUE)
    folders <<- character()
    device <<- NULL
  })
}
