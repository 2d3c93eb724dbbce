/**
 * Measures the processor time that this process spends in `act`. Tests bound this, not the time on the clock, which grows
 * with whatever else the machine does.
 */
export async function measureCpuMs(act: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
