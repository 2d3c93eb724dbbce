import { Fault } from '@atoll/kit/fault'
import { loadServerConfig, settingNames } from '@atoll/server/config'

/** Settings of the server in this environment, as a file for systemd and for the shell. */
export function renderSettings(environment: Readonly<Record<string, string | undefined>>): string {
  const { server } = loadServerConfig(environment)
  if (server.ATOLL_LOG === 'stdout') {
    const message =
      'The service drops standard output, so ATOLL_LOG=stdout would lose the log. Unset ATOLL_LOG'
    throw new Fault('invalid', 'configuration_refused', message)
  }
  const isSetting = (name: string) => settingNames().has(name) || name.startsWith('OTEL_')
  const lines = Object.entries(environment)
    .filter(([name]) => isSetting(name))
    .map(([name, value = '']) => `${name}=${quote(name, value)}\n`)
    .toSorted()
  return `${head}${lines.join('')}`
}

const head = `# Settings of the Atoll server: docs/configuration.md. Apply changes with: systemctl restart atoll
# For commands of \`atoll\` on this machine: set -a; . /etc/atoll/atoll.env
`

function quote(name: string, value: string): string {
  if (/^[\w/.:,@+=*-]*$/.test(value)) return value
  // oxlint-disable-next-line no-control-regex -- what a line of the file cannot hold
  if (/[\u0000-\u001f\u007f]/.test(value)) {
    const message = `${name} contains a control character, which the settings file cannot hold`
    throw new Fault('invalid', 'configuration_refused', message)
  }
  return `"${value.replaceAll(/["\\`$]/g, String.raw`\$&`)}"`
}
