/**
 * Plugin for oxlint that reports every comment, and every string of several words: messages, help texts and test
 * titles. So `prose.ts` reads them without a parser of its own.
 */

interface Comment {
  readonly type: 'Line' | 'Block' | 'Shebang'
  readonly value: string
  readonly loc: object
}

interface TextNode {
  readonly value: unknown
  readonly loc: object
}

interface RuleContext {
  readonly sourceCode: { getAllComments(): readonly Comment[] }
  report(diagnostic: { readonly loc: object; readonly message: string }): void
}

/** @public oxlint loads a plugin by its default export. */
// oxlint-disable-next-line import/no-default-export
export default {
  meta: { name: 'prose' },
  rules: {
    comments: {
      create: (context: RuleContext) => ({
        Program() {
          for (const { type, value, loc } of context.sourceCode.getAllComments()) {
            if (type !== 'Shebang') context.report({ loc, message: `${type} ${value}` })
          }
        },
      }),
    },
    texts: {
      create(context: RuleContext) {
        const report = (text: unknown, loc: object) => {
          if (typeof text === 'string' && isProse(text)) context.report({ loc, message: text })
        }
        return {
          Literal: ({ value, loc }: TextNode) => report(value, loc),
          JSXText: ({ value, loc }: TextNode) => report(value, loc),
          TemplateElement: ({ value, loc }: { value: { cooked: unknown }; loc: object }) =>
            report(value.cooked, loc),
        }
      },
    },
  },
}

/** Needs three words, to leave out names, paths and short commands. */
function isProse(text: string): boolean {
  return /[a-z]+ [a-z]+ [a-z]+/i.test(text)
}
