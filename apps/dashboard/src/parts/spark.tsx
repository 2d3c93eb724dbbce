import { sparkPath } from '../model/samples.ts'

const box = { width: 78, height: 20 }

export function Spark({
  values,
  top,
  label,
}: {
  readonly values: readonly number[]
  readonly top: number
  readonly label: string
}) {
  const line = sparkPath(values, { ...box, top })
  return (
    <svg class="spark" viewBox={`0 0 ${box.width} ${box.height}`} role="img" aria-label={label}>
      <title>{label}</title>
      {values.length > 1 && (
        <path class="area" d={`${line}L${box.width} ${box.height}L0 ${box.height}Z`} />
      )}
      <path d={line} />
    </svg>
  )
}
