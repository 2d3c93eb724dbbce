/** Plugin for oxlint that reports every comment, so that `prose.ts` reads comments without a parser of its own. */

interface Comment {
  readonly type: 'Line' | 'Block' | 'Shebang'
  readonly value: string
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
  },
}
