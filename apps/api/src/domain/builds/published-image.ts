/**
 * Returns the name of a template of this installation that an image of the published clients stands for: `base` for
 * `e2bdev/base`, their default, and `code-interpreter` for `e2bdev/code-interpreter`. Not every name has a template.
 */
export function publishedTemplate(image: string): string | undefined {
  if (image === 'base') return image
  return published.exec(image)?.[1]
}

const published =
  /^(?:(?:docker\.io|index\.docker\.io|registry-1\.docker\.io)\/)?e2bdev\/([a-z0-9][a-z0-9_-]*)(?::[\w.-]+)?$/
