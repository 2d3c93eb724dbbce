/** Returns a function that says whether an offset is code, not inside a text, a template or a comment. */
export function findCode(code: string): (offset: number) => boolean {
  const skipped: Array<readonly [number, number]> = []
  const pattern =
    /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|'(?:\\[^]|[^'\\\n])*'?|"(?:\\[^]|[^"\\\n])*"?|`(?:\\[^]|[^`\\])*`?/g
  for (const found of code.matchAll(pattern)) {
    skipped.push([found.index, found.index + found[0].length])
  }
  return (offset) => !skipped.some(([start, end]) => start <= offset && offset < end)
}
