import { CliCommand, withDescendants } from './command.ts'

/** Shell completion, generated from the declarations of the commands. The scripts never run `atoll`. */

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

export function completionScript(program: CliCommand, shell: Shell): string {
  const cases = withDescendants(program).flatMap(toCases)
  return shell === 'fish'
    ? fishScript(cases)
    : shell === 'zsh'
      ? zshScript(cases)
      : bashScript(cases)
}

/** Words that can follow one command. */
interface Case {
  /** Words with a space between them, by name or alias. */
  readonly path: string
  readonly words: readonly Word[]
  readonly options: readonly OptionCase[]
  readonly paths: Paths
}

interface Word {
  readonly word: string
  readonly description: string
}

interface OptionCase extends Word {
  readonly takesValue: boolean
  readonly choices: readonly string[]
  readonly paths: Paths
}

/** Whether local paths complete a value. */
type Paths = 'files' | 'directories' | 'none'

function toCases(command: CliCommand): Case[] {
  const words = command.children.map((child) => ({
    word: child.name(),
    description: child.description(),
  }))
  const args = command.registeredArguments
  const choices = args.flatMap(({ argChoices = [] }) => argChoices)
  const content = {
    words: [...words, ...choices.map((word) => ({ word, description: '' }))],
    options: optionsOf(command),
    paths: args.map((argument) => pathsOf(argument.name())).find(isPaths) ?? 'none',
  } as const
  return pathsTo(command).map((path) => ({ path, ...content }))
}

function optionsOf(command: CliCommand): OptionCase[] {
  const help = { word: '--help', description: 'display help', takesValue: false }
  const declared = command.options.map((option) => ({
    word: option.long ?? option.short ?? '',
    description: option.description,
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
    paths: pathsOf(/[<[]([^>\]]*)/.exec(option.flags)?.[1] ?? ''),
  }))
  return [...declared, { ...help, choices: [], paths: 'none' }]
}

function pathsOf(placeholder: string): Paths {
  if (/^(source|target|file)\b/.test(placeholder)) return 'files'
  return /^directory\b/.test(placeholder) ? 'directories' : 'none'
}

function isPaths(paths: Paths): boolean {
  return paths !== 'none'
}

/** All ways to write the command, since each level may have aliases. */
function pathsTo(command: CliCommand): string[] {
  const names = [command.name(), ...command.aliases()]
  const { parent } = command
  if (!(parent instanceof CliCommand)) return [command.name()]
  return pathsTo(parent).flatMap((start) => names.map((name) => `${start} ${name}`))
}

function bashScript(cases: readonly Case[]): string {
  return `# Completion of atoll for bash: source <(atoll completion bash)
${findPath(cases)}
_atoll() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at words= paths=
  _atoll_find_path "\${COMP_WORDS[@]:1:COMP_CWORD-1}"
  case "$at $previous" in
${cases.flatMap(optionValueCases).join('\n')}
  *)
    case $at in
${cases.map(({ path, ...found }) => `    ${quote(path)}) ${setWords(found)} ;;`).join('\n')}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case $paths in
    files) compopt -o filenames; COMPREPLY+=($(compgen -f -- "$current")) ;;
    directories) compopt -o filenames; COMPREPLY+=($(compgen -d -- "$current")) ;;
  esac
}
complete -F _atoll atoll
`
}

/** Sets `at` to the longest command that the words begin with. Options and arguments are skipped. */
function findPath(cases: readonly Case[]): string {
  return `_atoll_find_path() {
  local word
  at=atoll
  for word in "$@"; do
    case "$at $word" in
${cases.map(({ path }) => `      ${quote(path)}`).join(' |\\\n')}) at="$at $word" ;;
    esac
  done
}`
}

function optionValueCases({ path, options }: Case): string[] {
  const withValue = options.filter(({ takesValue }) => takesValue)
  return withValue.map(
    ({ word, choices, paths }) =>
      `  ${quote(`${path} ${word}`)}) words=${quote(choices.join(' '))} paths=${paths} ;;`,
  )
}

function setWords({ words, options, paths }: Omit<Case, 'path'>): string {
  const all = [...words, ...options].map(({ word }) => word).join(' ')
  return `words=${quote(all)} paths=${paths}`
}

function zshScript(cases: readonly Case[]): string {
  return `#compdef atoll
# Completion of atoll for zsh: source <(atoll completion zsh), after compinit
${findPath(cases)}
_atoll() {
  local at previous=\${words[CURRENT-1]} paths=
  local -a found
  _atoll_find_path "\${(@)words[2,CURRENT-1]}"
  case "$at $previous" in
${cases.flatMap(zshValueCases).join('\n')}
  *)
    case $at in
${cases.map(zshCase).join('\n')}
    esac ;;
  esac
  (( \${#found} )) && _describe atoll found
  case $paths in
    files) _files ;;
    directories) _files -/ ;;
  esac
}
compdef _atoll atoll
`
}

function zshValueCases({ path, options }: Case): string[] {
  const withValue = options.filter(({ takesValue }) => takesValue)
  return withValue.map(
    ({ word, choices, paths }) =>
      `  ${quote(`${path} ${word}`)}) found=(${choices.map(quote).join(' ')}) paths=${paths} ;;`,
  )
}

function zshCase({ path, words, options, paths }: Case): string {
  const found = [...words, ...options].map(({ word, description }) =>
    quote(`${word}:${description.replaceAll(':', ' ')}`),
  )
  return `    ${quote(path)}) found=(${found.join(' ')}) paths=${paths} ;;`
}

function fishScript(cases: readonly Case[]): string {
  return `# Completion of atoll for fish: atoll completion fish | source
function __atoll_at
    set -l path atoll
    set -l words (commandline -opc)
    for word in $words[2..-1]
        switch "$path $word"
            case ${cases.map(({ path }) => quote(path)).join(' ')}
                set path "$path $word"
        end
    end
    test "$path" = "$argv[1]"
end
complete -c atoll -f
${cases.flatMap(fishLines).join('\n')}
`
}

function fishLines({ path, words, options, paths }: Case): string[] {
  const at = `complete -c atoll -n ${quote(`__atoll_at ${quote(path)}`)}`
  return [
    ...words.map(({ word, description }) => `${at} -a ${quote(word)} -d ${quote(description)}`),
    ...options.map((option) => `${at} ${fishOption(option)} -d ${quote(option.description)}`),
    ...(paths === 'none' ? [] : [`${at} ${fishPaths[paths]}`]),
  ]
}

function fishOption({ word, takesValue, choices, paths }: OptionCase): string {
  const value = choices.length > 0 ? ` -a ${quote(choices.join(' '))}` : ''
  const files = paths === 'none' ? '' : ` ${fishPaths[paths]}`
  return `-l ${quote(word.replace(/^--/, ''))}${takesValue ? ` -r${value}${files}` : ''}`
}

const fishPaths = { files: '-F', directories: `-a ${quote('(__fish_complete_directories)')}` }

/** Quotes for all three shells. Descriptions contain no backslashes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
