import { readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { existsSync } from 'node:fs'
import { Fault } from '@atoll/kit/fault'

/** Fills in the systemd unit of this clone from the template in `deploy/systemd`. */

const repository = join(import.meta.dirname, '../../../..')
export const unitName = 'atoll.service'
export const unitFile = `/etc/systemd/system/${unitName}`
export const settingsFile = '/etc/atoll/atoll.env'

/** systemd does not use the search path of the shell that installs the unit. */
const standardPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export async function renderUnit(
  searchPath: string | undefined,
  root = repository,
): Promise<string> {
  const template = await readFile(join(repository, 'deploy/systemd', unitName), 'utf8')
  const values: Readonly<Record<string, string>> = {
    ROOT: checkPath(root),
    PATH: checkPath(serverPath(searchPath)),
    ENV_FILE: settingsFile,
  }
  return template
    .replace(/^#.*\n/, '')
    .replaceAll(/@([A-Z_]+)@/g, (_, name: string) => values[name] ?? '')
}

/** Adds the folder of Node.js to the standard path if it is elsewhere, for example below a home directory. */
function serverPath(searchPath = ''): string {
  const folders = searchPath.split(delimiter).filter((folder) => folder.startsWith('/'))
  // The pinned Node.js of the clone cannot install itself.
  const isForeign = (folder: string) => !folder.startsWith(`${repository}/`)
  const withNode = folders.find((folder) => isForeign(folder) && existsSync(join(folder, 'node')))
  if (withNode === undefined || standardPath.split(':').includes(withNode)) return standardPath
  return `${standardPath}:${withNode}`
}

/** systemd gives many characters a meaning. */
function checkPath(path: string): string {
  if (/^[\w/.:+-]+$/.test(path)) return path
  throw new Fault(
    'invalid',
    'service_path_unusable',
    `systemd cannot use the path ${path}: only letters, digits and /._+-: are possible. Move the clone`,
  )
}
