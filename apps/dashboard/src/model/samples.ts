const maxSamples = 40

export function appendSample<Sample>(
  samples: readonly Sample[] = [],
  sample: Sample,
): readonly Sample[] {
  return [...samples.slice(-(maxSamples - 1)), sample]
}

/** Returns an SVG path through the values; 0 is at the bottom and `top` at the top. */
export function sparkPath(
  values: readonly number[],
  box: { readonly width: number; readonly height: number; readonly top: number },
): string {
  if (values.length === 0) return ''
  const step = box.width / Math.max(1, values.length - 1)
  return values
    .map((value, index) => {
      const share = Math.min(1, Math.max(0, value / (box.top || 1)))
      const x = (index * step).toFixed(1)
      const y = (box.height - share * box.height).toFixed(1)
      return `${index === 0 ? 'M' : 'L'}${x} ${y}`
    })
    .join('')
}
