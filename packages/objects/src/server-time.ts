/** Reads the time of a server from its answer. `middleware` belongs to the step `deserialize` of one request. */
export function createServerTime() {
  let date: unknown
  return {
    middleware:
      <Args, Result extends { readonly response: unknown }>(
        next: (args: Args) => Promise<Result>,
      ) =>
      async (args: Args): Promise<Result> => {
        const result = await next(args)
        date = fieldOf(fieldOf(result.response, 'headers'), 'date')
        return result
      },

    readMs(): number {
      const ms = typeof date === 'string' ? Date.parse(date) : Number.NaN
      if (Number.isNaN(ms)) throw new Error('the object store sent no valid Date')
      return ms
    },
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
