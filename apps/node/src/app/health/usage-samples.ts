import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'

/** One reading of a sandbox's resource usage. */
export interface SandboxSample {
  readonly sandboxId: string
  readonly cpuCount: number
  readonly cpuUsedNs: bigint
  readonly readAtNs: bigint
  readonly ageNs: bigint
  readonly memoryUsedBytes: bigint
  readonly memoryCacheBytes: bigint
  readonly memoryTotalBytes: bigint
  readonly diskUsedBytes: bigint
  readonly diskTotalBytes: bigint
}

export interface SamplePorts {
  /** Undefined when the sandbox is gone. */
  readGroup(cellId: string): Promise<
    | {
        readonly cpuUsedNs: bigint
        readonly memoryUsedBytes: bigint
        readonly memoryCacheBytes: bigint
      }
    | undefined
  >
  readDisks(
    cellIds: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly usedBytes: bigint; readonly totalBytes: bigint }>>
  ageNs(sandbox: RunningSandbox): bigint | undefined
  /** Monotonic clock. */
  nowNs(): bigint
}

/** One pass over the running sandboxes. Reads three small files each, and runs one command for all disks. */
export async function sampleSandboxes(
  running: readonly RunningSandbox[],
  ports: SamplePorts,
): Promise<SandboxSample[]> {
  const disks = await ports.readDisks(running.map(({ record }) => record.cellId))
  const samples: SandboxSample[] = []
  for (const sandbox of running) {
    const { cellId, owner, cpuCount, memoryMb } = sandbox.record
    const [disk, ageNs] = [disks.get(cellId), ports.ageNs(sandbox)]
    const group = await ports.readGroup(cellId)
    if (!disk || !group || ageNs === undefined) continue
    samples.push({
      sandboxId: owner.sandboxId,
      cpuCount,
      ...group,
      readAtNs: ports.nowNs(),
      ageNs,
      memoryTotalBytes: BigInt(memoryMb) * mebibyte,
      diskUsedBytes: disk.usedBytes,
      diskTotalBytes: disk.totalBytes,
    })
  }
  return samples
}

const mebibyte = 2n ** 20n
