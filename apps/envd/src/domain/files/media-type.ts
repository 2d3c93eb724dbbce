import { posix } from 'node:path'

/** Returns the media type for the file extension. */
export function mediaTypeOf(path: string): string | undefined {
  const type = types.get(posix.extname(path).slice(1).toLowerCase())
  return type?.startsWith('text/') ? `${type}; charset=utf-8` : type
}

const types = new Map(
  `
  text/plain txt text log conf ini
  text/markdown md markdown
  text/html html htm
  text/css css
  text/csv csv
  text/tab-separated-values tsv
  text/javascript js mjs cjs
  text/xml xml
  text/x-python py
  text/x-sh sh
  text/calendar ics
  text/vtt vtt
  application/json json map ipynb
  application/ld+json jsonld
  application/x-ndjson ndjson jsonl
  application/yaml yaml yml
  application/toml toml
  application/sql sql
  application/wasm wasm
  application/pdf pdf
  application/rtf rtf
  application/zip zip whl jar
  application/gzip gz tgz
  application/x-bzip2 bz2
  application/x-xz xz
  application/zstd zst
  application/x-tar tar
  application/x-7z-compressed 7z
  application/vnd.rar rar
  application/epub+zip epub
  application/vnd.sqlite3 sqlite sqlite3 db
  application/vnd.apache.parquet parquet
  application/msword doc
  application/vnd.ms-excel xls
  application/vnd.ms-powerpoint ppt
  application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
  application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
  application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
  application/vnd.oasis.opendocument.text odt
  application/vnd.oasis.opendocument.spreadsheet ods
  application/vnd.debian.binary-package deb
  image/png png
  image/jpeg jpg jpeg
  image/gif gif
  image/webp webp
  image/avif avif
  image/svg+xml svg
  image/bmp bmp
  image/tiff tif tiff
  image/x-icon ico
  image/heic heic
  audio/mpeg mp3
  audio/wav wav
  audio/ogg ogg oga opus
  audio/flac flac
  audio/aac aac
  audio/mp4 m4a
  audio/midi mid midi
  video/mp4 mp4 m4v
  video/webm webm
  video/ogg ogv
  video/quicktime mov
  video/x-msvideo avi
  video/x-matroska mkv
  font/woff woff
  font/woff2 woff2
  font/ttf ttf
  font/otf otf
  `
    .trim()
    .split('\n')
    .flatMap((line): [string, string][] => {
      const [type = '', ...extensions] = line.trim().split(' ')
      return extensions.map((extension) => [extension, type])
    }),
)
