/** Calls `report` once for each ID: reconcilers find the same things again every few seconds. */
export function reportOnce(report: (id: string) => void): (id: string) => void {
  const reported = new Set<string>()
  return (id) => {
    if (reported.has(id)) return
    reported.add(id)
    report(id)
  }
}
