/**
 * `example.com` matches only itself; `*.example.com` matches all its subdomains but not itself. Names and patterns must
 * be normalized by dns-name.ts.
 */
export function matchesName(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.startsWith('*.') ? isBelow(name, pattern.slice(1)) : name === pattern,
  )
}

/** `suffix` begins with a dot, so notexample.com does not match *.example.com. */
function isBelow(name: string, suffix: string): boolean {
  return name.length > suffix.length && name.endsWith(suffix)
}
