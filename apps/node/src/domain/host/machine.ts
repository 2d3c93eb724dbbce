export interface MachineFacts {
  readonly cpuArchitecture: string
  readonly cpuFamily: string
  readonly cpuModel: string
  readonly cpuModelName: string
}

export interface MachineUsage {
  readonly cpuCount: number
  /** Usage of all cores together since the previous reading. */
  readonly cpuPercent: number
  readonly memoryTotalBytes: number
  readonly memoryUsedBytes: number
  readonly hugePages: {
    readonly total: number
    readonly used: number
    readonly reserved: number
    readonly pageSizeBytes: number
  }
  readonly disks: readonly DiskUsage[]
}

export interface DiskUsage {
  readonly mountPoint: string
  readonly device: string
  readonly fileSystem: string
  readonly usedBytes: number
  readonly totalBytes: number
}

/** Parses `name : value` lines of the first block only: `/proc/cpuinfo` has one block per core. */
export function parseCpuInfo(text: string, cpuArchitecture: string): MachineFacts {
  const [first = ''] = text.split('\n\n')
  const values = parseFields(first)
  return {
    cpuArchitecture,
    cpuFamily: values.get('cpu family') ?? '',
    cpuModel: values.get('model') ?? '',
    cpuModelName: values.get('model name') ?? '',
  }
}

/** Returns the instruction set extensions that the first core has, in order. */
export function parseCpuFeatures(text: string): string[] {
  const [first = ''] = text.split('\n\n')
  const values = parseFields(first)
  const features = values.get('flags') ?? values.get('Features') ?? ''
  return features.split(' ').filter(Boolean).toSorted()
}

export function parseHugePages(meminfo: string): MachineUsage['hugePages'] {
  const values = parseFields(meminfo)
  const read = (name: string) => Number.parseInt(values.get(name) ?? '0', 10)
  const total = read('HugePages_Total')
  return {
    total,
    used: total - read('HugePages_Free'),
    reserved: read('HugePages_Rsvd'),
    pageSizeBytes: read('Hugepagesize') * 1024,
  }
}

function parseFields(text: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, name, value] = /^([^:\t]+?)\s*:\s*(.*)$/.exec(line) ?? []
    if (name !== undefined && value !== undefined) fields.set(name, value)
  }
  return fields
}

/**
 * Finds the mount in `/proc/self/mountinfo` that holds a path: the deepest one, and the last of several at the same
 * place.
 */
export function findMount(
  mountInfo: string,
  path: string,
): Pick<DiskUsage, 'mountPoint' | 'device' | 'fileSystem'> | undefined {
  let found: ReturnType<typeof findMount>
  for (const line of mountInfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const mountPoint = unescape(before.split(' ')[4] ?? '')
    const [fileSystem, device] = after.split(' ')
    if (fileSystem === undefined || device === undefined || !isWithin(path, mountPoint)) continue
    if (found && found.mountPoint.length > mountPoint.length) continue
    found = { mountPoint, device: unescape(device), fileSystem }
  }
  return found
}

/** The kernel escapes spaces and similar characters as three octal digits. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  )
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}
