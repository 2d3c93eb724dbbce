/**
 * `example.com` stands for itself, `*.example.com` for everything below it and not for itself. Both sides are in the form
 * of dns-name.ts.
 */
export function matchesName(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.startsWith('*.') ? isBelow(name, pattern.slice(1)) : name === pattern,
  )
}

/** `suffix` begins with a dot, so that notexample.com is not below example.com. */
function isBelow(name: string, suffix: string): boolean {
  return name.length > suffix.length && name.endsWith(suffix)
}
