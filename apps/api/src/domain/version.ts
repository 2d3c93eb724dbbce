/** Compares dotted version numbers such as "0.5.7". */
export function isAtLeast(version: string, least: string): boolean {
  const [a, b] = [version, least].map((text) =>
    text.split('.').map((part) => Number.parseInt(part)),
  )
  for (const [index, wanted] of (b ?? []).entries()) {
    const given = a?.[index] ?? 0
    if (given !== wanted) return given > wanted
  }
  return true
}
