/**
 * Measures the CPU time that this process spends in `act`. Tests limit CPU time rather than wall time, which depends on
 * the load of the machine.
 */
export async function measureCpuMs(act: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
