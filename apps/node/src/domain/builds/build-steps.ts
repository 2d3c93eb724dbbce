import { posix } from 'node:path'
import type { BuildRequest, BuildStep, PlannedStep, StepCommand } from './build.ts'
import {
  copyScript,
  imageSetupScript,
  pathScript,
  userScript,
  workdirScript,
} from './build-scripts.ts'
import { inShell } from '../sandboxes/commands.ts'
import type { Setup } from '../sandboxes/setup.ts'
import { BuildError } from './build-error.ts'

const maxSteps = 200
const maxTextLength = 1024 * 1024
/** Starting a process with a larger environment would fail. */
const maxVariablesLength = 64 * 1024

/** Plans all steps before the first one runs, so a mistake in the last step fails the build at once. */
export function planSteps(request: BuildRequest, parent: Setup): PlannedStep[] {
  if (request.steps.length > maxSteps) {
    throw new BuildError('base', `A template has at most ${maxSteps} steps: join some of them`)
  }
  const texts = request.steps.flatMap(({ args }) => args)
  if (texts.reduce((sum, text) => sum + text.length, 0) > maxTextLength) {
    throw new BuildError('base', 'All steps together are longer than 1 MiB: put some into files')
  }
  const { startCommand: _start, readyCommand: _ready, ...rest } = parent
  let setup: Setup = rest
  let { force: isForced } = request
  return request.steps.map((step, index) => {
    isForced ||= step.force
    const name = String(index + 1)
    const planned = { ...planStep(name, step, setup), isForced }
    ;({ setup } = planned)
    return planned
  })
}

/** Plans the step that adds to an image what clients expect of a sandbox: bash, the default user and a login PATH. */
export function planImageSetup(setup: Setup): Pick<PlannedStep, 'command' | 'setup' | 'isForced'> {
  const path = setup.envVars['PATH']
  const profile = path === undefined ? '' : quoted(path)
  const command = asRoot('/bin/sh', ['-euc', imageSetupScript, 'furnish', setup.user, profile])
  return { command, setup, isForced: false }
}

type Planned = Omit<PlannedStep, 'isForced'>

function planStep(step: string, given: BuildStep, setup: Setup): Planned {
  const type = given.type.toUpperCase()
  const title = `${type} ${given.args.filter((arg) => arg !== '').join(' ')}`.trim()
  const plan = plans[type]
  if (!plan) {
    throw new BuildError(
      step,
      `There is no step ${given.type}: use ${Object.keys(plans).join(', ')}`,
    )
  }
  for (const text of given.args) {
    if (text.includes('\0')) throw new BuildError(step, `${type} has a NUL character in it`)
  }
  return { step, title, ...plan({ ...given, type }, setup, step) }
}

type Plan = (given: BuildStep, setup: Setup, step: string) => Pick<Planned, 'command' | 'setup'>

const planRun: Plan = ({ args }, setup, step) => {
  const [script = '', user = ''] = args
  if (script.trim() === '') throw new BuildError(step, 'RUN needs a command')
  const command = {
    ...inShell(script),
    user: user || setup.user,
    cwd: setup.workdir,
    envVars: setup.envVars,
  }
  return { command, setup }
}

const planCopy: Plan = ({ type, args, filesHash }, setup, step) => {
  const [source = '', target = '', owner = '', mode = ''] = args
  if (source === '' || target === '') throw new BuildError(step, `${type} needs two paths`)
  if (!/^[0-9a-f]{64}$/.test(filesHash ?? '')) {
    throw new BuildError(step, `${type} came without files`)
  }
  if (!/^[0-7]{0,4}$/.test(mode)) throw new BuildError(step, `${mode} is no mode such as 0755`)
  const place = posix.resolve(setup.workdir ?? homeOf(setup.user), target)
  const isFolder = /(^|\/)\.?$/.test(target) ? 'yes' : ''
  const script = ['-euc', copyScript, 'copy', source, place, isFolder, owner || setup.user, mode]
  return { command: { ...asRoot('/bin/bash', script), ...(filesHash && { filesHash }) }, setup }
}

const planUser: Plan = ({ args }, setup, step) => {
  const [written = '', mayBecomeRoot = ''] = args
  const given = expand(written, setup.envVars, step)
  // A group after the colon is ignored: files get the user's own group.
  const [, name] = /^([a-z_][a-z0-9_-]{0,31})(?::.*)?$/i.exec(given) ?? []
  if (name === undefined) {
    throw new BuildError(step, `USER needs the name of a user, which ${given || 'nothing'} is not`)
  }
  if (name === 'root') return { setup: { ...setup, user: name } }
  const command = asRoot('/bin/sh', ['-euc', userScript, 'user', name, mayBecomeRoot])
  return { command, setup: { ...setup, user: name } }
}

const planWorkdir: Plan = ({ args }, setup, step) => {
  const path = expand(args[0] ?? '', setup.envVars, step)
  if (path === '' || path.includes('\n')) throw new BuildError(step, 'WORKDIR needs a path')
  const place = posix.resolve('/', setup.workdir ?? '/', path)
  if (place === '/') return { setup: { ...setup, workdir: place } }
  const command = asRoot('/bin/sh', ['-euc', workdirScript, 'workdir', place, setup.user])
  return { command, setup: { ...setup, workdir: place } }
}

const planEnv: Plan = ({ type, args }, setup, step) => {
  if (args.length === 0 || args.length % 2 !== 0) {
    throw new BuildError(step, `${type} needs names and values in turn`)
  }
  const envVars = { ...setup.envVars }
  for (let at = 0; at < args.length; at += 2) {
    const [name = '', value = ''] = args.slice(at, at + 2)
    if (name === '' || name.includes('=') || name === '__proto__') {
      throw new BuildError(step, `${JSON.stringify(name)} cannot be the name of a variable`)
    }
    envVars[name] = expand(value, envVars, step)
  }
  const size = Object.entries(envVars).reduce((sum, pair) => sum + pair.join('=').length, 0)
  if (size > maxVariablesLength) throw tooManyVariables(step)
  const isNew = envVars['PATH'] !== setup.envVars['PATH']
  const command = asRoot('/bin/sh', ['-euc', pathScript, 'path', quoted(envVars['PATH'] ?? '')])
  return { ...(isNew && { command }), setup: { ...setup, envVars } }
}

const plans: Readonly<Record<string, Plan>> = {
  RUN: planRun,
  COPY: planCopy,
  ADD: planCopy,
  USER: planUser,
  WORKDIR: planWorkdir,
  ENV: planEnv,
  ARG: planEnv,
}

/** Quotes text for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function homeOf(user: string): string {
  return user === 'root' ? '/root' : `/home/${user}`
}

function asRoot(command: string, args: readonly string[]): StepCommand {
  return { command, args, user: 'root', cwd: '/', envVars: {} }
}

/** Expands variables as a Dockerfile does; `\\$` gives a literal dollar sign. */
function expand(value: string, known: Readonly<Record<string, string>>, step: string): string {
  let size = value.length
  return value.replaceAll(
    /\\\$|\$(?:\{(\w+)\}|(\w+))/g,
    (_whole, braced: string | undefined, plain: string | undefined) => {
      const name = braced ?? plain
      if (name === undefined) return '$'
      const text = valueOf(name, known) ?? valueOf(name, usual) ?? ''
      size += text.length
      if (size > maxVariablesLength) throw tooManyVariables(step)
      return text
    },
  )
}

function valueOf(name: string, known: Readonly<Record<string, string>>): string | undefined {
  return Object.hasOwn(known, name) ? known[name] : undefined
}

function tooManyVariables(step: string): BuildError {
  return new BuildError(step, 'Variables take more than 64 KiB together')
}

const usual: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
}
