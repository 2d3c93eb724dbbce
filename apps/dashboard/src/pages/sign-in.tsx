import { useEffect, useState } from 'preact/hooks'
import { navigate, route } from '../data/location.ts'
import { session, signIn } from '../data/session.ts'
import { Field } from '../parts/controls.tsx'

export function SignInPage() {
  const [apiKey, setApiKey] = useState('')
  const { attempt, error, isBusy } = useSignIn()
  return (
    <div class="sign-in">
      <form
        class="panel stack"
        onSubmit={(event) => {
          event.preventDefault()
          void attempt({ apiKey })
        }}
      >
        <div class="brand" style={{ padding: 0 }}>
          <img src="/assets/icon.svg" alt="" />
          <span>Atoll</span>
        </div>
        <h1>Sign in</h1>
        <Field label="API key">
          <input
            class="input mono"
            type="password"
            name="apiKey"
            autoComplete="current-password"
            placeholder="e2b_…"
            required
            autoFocus
            value={apiKey}
            onInput={(event) => setApiKey(event.currentTarget.value)}
          />
        </Field>
        {error && (
          <div class="note" role="alert">
            {error}
          </div>
        )}
        <button class="button main" type="submit" disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
        <p class="soft">
          On the server, <code>bin/atoll key show</code> prints the key. <code>npm start</code> also
          prints a link that signs in once.
        </p>
      </form>
    </div>
  )
}

function useSignIn() {
  const [error, setError] = useState('')
  const [isBusy, setBusy] = useState(false)
  const attempt = async (credentials: Parameters<typeof signIn>[0]) => {
    setBusy(true)
    setError('')
    try {
      await signIn(credentials)
      if (route.value.page === 'sign-in') navigate('/', { replace: true })
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown))
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => {
    // A sign-in link has its token in the fragment, which browsers never send to a server.
    const link = location.hash.slice(1)
    if (link) history.replaceState(null, '', '/sign-in')
    if (link) void attempt({ link })
    else if (session.value) navigate('/', { replace: true })
  }, [])
  return { attempt, error, isBusy }
}
