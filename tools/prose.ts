/**
 * Rejects comments that make the reader guess: comments that start with a pronoun instead of the thing they describe,
 * and invented words for terms that engineers know. Rejects these words in messages, help texts, test titles and Markdown
 * pages too.
 */
import { topFolder } from './debt.ts'
import type { Finding, Rule } from './debt.ts'

export interface Comment {
  readonly path: string
  readonly line: number
  readonly column: number
  readonly type: 'Line' | 'Block'
  readonly text: string
}

/** Share of comments in a folder that may start with a pronoun or a preposition. */
const weakStartShare = 0.08

export function proseRules(comments: readonly Comment[], texts: readonly Finding[] = []): Rule[] {
  const prose = comments.filter(({ text }) => isProse(text))
  const commentsOf = Map.groupBy(prose, ({ path }) => topFolder(path))
  return [
    {
      name: 'unclear comment',
      findings: prose.flatMap(findUnclear),
      groupOf: topFolder,
      toleratedIn: () => 0,
    },
    {
      name: 'comment starts with a pronoun or preposition',
      findings: prose.filter(({ text }) => startsWeakly(text)).map(quote),
      groupOf: topFolder,
      toleratedIn: (folder) => Math.floor((commentsOf.get(folder)?.length ?? 0) * weakStartShare),
    },
    {
      name: 'invented word in a message, test title or page',
      findings: texts.flatMap(findSoftWords),
      groupOf: topFolder,
      toleratedIn: () => 0,
    },
  ]
}

/** Joins `//` comments on consecutive lines, since one sentence often takes several lines. */
export function joinLineComments(comments: readonly Comment[]): Comment[] {
  const joined: Comment[] = []
  let previous: Comment | undefined
  for (const comment of comments) {
    const first = joined.at(-1)
    if (first && previous && isNextLine(previous, comment)) {
      joined[joined.length - 1] = { ...first, text: `${first.text} ${comment.text}` }
    } else joined.push(comment)
    previous = comment
  }
  return joined
}

function isNextLine(previous: Comment, next: Comment): boolean {
  return (
    previous.type === 'Line' &&
    next.type === 'Line' &&
    previous.path === next.path &&
    previous.column === next.column &&
    previous.line + 1 === next.line
  )
}

/** Returns the text of a comment without its asterisks and line breaks. */
export function plainText(comment: string): string {
  return comment
    .replace(/^\*+/, '')
    .replace(/\n[ \t]*\*?/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

/** False for directives of tools and for blocks of JSDoc tags. */
function isProse(text: string): boolean {
  return /\w/.test(text) && !/^(@|oxlint-|eslint-|biome-|https?:\S+$|\/ <)/.test(text)
}

const verbs =
  'is|are|was|were|has|have|had|may|must|can|cannot|could|would|will|shall|should|do|does|did|only|also|' +
  'needs?|takes?|makes?|means?|keeps?|gets?|gives?|goes|comes?|runs?|waits?|says?|ends?|follows?|stays?|works?'
const relatives = 'that|which|who|whom|whose|where|of|with|without|whatever|about|to be'

const unclearStarts: readonly RegExp[] = [
  /^(it|its|they|them|their|he|him|his|she|her|others|ones)\b/i,
  /^(whoever|whomever|whatever|whichever|somebody|someone|everybody|nobody|anybody)\b/i,
  new RegExp(
    String.raw`^(this|that|these|those|one|none|some|both|such)( ones?)? (${verbs}|${relatives})\b`,
    'i',
  ),
  /^that (the|a|an|it|they)\b/i,
  // Noun clauses ("What the node sends."); questions may start so.
  /^(what|who|whom|whose)\b(?![^.]*\?)/i,
]

/** Soft synonyms, each with the words to use instead. */
const softWords: ReadonlyArray<readonly [RegExp, string]> = [
  [/\b(stands?|standing|stood) still\b/i, 'is frozen, is paused, stops'],
  [/\b(go|goes|going|gone|went) on\b/i, 'continue, resume, keep running'],
  [/\blet(s|ting)? go\b/i, 'release, delete, drop'],
  [/\bputs? aside\b|\bputting aside\b/i, 'pause, keep, store'],
  [/\bleads?\b|\bled\b/, 'route, redirect, resolve, point to'],
  [/\b(tells?|told|telling)\b(?! apart)/i, 'send, report, notify, assign, show'],
  [/\bhears? (of|from|that)\b|\bheard (of|from|that)\b/i, 'learn, receive'],
  [
    /\b(told|named|made|given|known|offer(s|ed)?) ahead\b(?! of)/i,
    'preassigned, prepared, in advance',
  ],
  [/\b(weighs?|weighing|weighed)\b/i, 'estimate, measure'],
  [/\b(rests|rested|resting)\b|\blets? (it |them |\w+ )?rest\b/i, 'idle, back off, throttle'],
  [/\bglad of\b/i, 'use'],
  [/\b(is|are|was|were|be|been|being|still) at it\b/i, 'owns, holds, works on'],
  [
    /\bin (the )?hands\b|\bin (its|their|our|somebody's|anybody's|nobody's) hands\b/i,
    'holds, owns',
  ],
  [/\b(whoever|whomever|somebody|everybody)\b/i, 'which caller, client, process or user'],
  [/\bnobody\b/i, 'no process, no client, no user'],
  [/\bthose (who|that)\b|\bthat of (one|those|the one)\b/i, 'the noun'],
  [/\b(stands?|stood) on\b/i, 'depend on, is based on'],
  [/\bin vain\b/i, 'without effect, is discarded'],
  [/\bastray\b/i, 'misroute, attack'],
]

function findUnclear({ path, line, text }: Comment): Finding[] {
  const prose = withoutCode(text)
  const start = unclearStart(prose)
  const problems = start ? [`starts with "${start}"; say the noun or start with a verb`] : []
  problems.push(...softWordsIn(prose))
  return problems.length > 0 ? [{ path, line, message: problems.join('. ') }] : []
}

function findSoftWords({ path, line, message: text }: Finding): Finding[] {
  const problems = softWordsIn(withoutCode(text))
  return problems.length > 0 ? [{ path, line, message: problems.join('. ') }] : []
}

function softWordsIn(prose: string): string[] {
  return softWords.flatMap(([pattern, instead]) => {
    const [found] = pattern.exec(prose) ?? []
    return found === undefined ? [] : [`"${found}"; say ${instead}`]
  })
}

/** Replaces names in backticks, which are not prose. */
function withoutCode(text: string): string {
  return text.replace(/`[^`]*`/g, '`code`')
}

function unclearStart(prose: string): string | undefined {
  return unclearStarts.map((pattern) => pattern.exec(prose)).find(Boolean)?.[0]
}

/** Pronouns that never come before their noun, and prepositions. */
const weakStarts = new Set(
  (
    'we our you your i which something everyone everything nothing anyone anything ' +
    'of in on at by for from to with without within into onto over under above below between among through during ' +
    'before after until since against about across along around behind beside besides beyond despite except inside ' +
    'outside like near off per toward towards upon via as'
  ).split(' '),
)

function startsWeakly(text: string): boolean {
  const [first = ''] = /^[\w'-]+/.exec(text) ?? []
  return weakStarts.has(first.toLowerCase()) || unclearStart(withoutCode(text)) !== undefined
}

function quote({ path, line, text }: Comment): Finding {
  return { path, line, message: text.length > 60 ? `${text.slice(0, 60)}…` : text }
}
