import { useEffect, useState } from 'preact/hooks'
import { isOperator, loadOperator, signInOperator, signOutOperator } from '../../data/operator.ts'
import { Button, Field } from '../../parts/controls.tsx'
import { Skeleton } from '../../parts/status.tsx'
import { showError } from '../../parts/toasts.tsx'
import { Nodes } from './nodes.tsx'
import { Teams } from './teams.tsx'

/** Nodes and teams of the installation, for its operator. */
export function OperatorPage() {
  useEffect(() => void loadOperator().catch(showError), [])
  return (
    <div class="page">
      <div class="page-head">
        <h1>Operator</h1>
        {isOperator.value && <Button action={signOutOperator}>Leave operator mode</Button>}
      </div>
      {isOperator.value === undefined && <Skeleton />}
      {isOperator.value === false && <OperatorSignIn />}
      {isOperator.value && (
        <>
          <Nodes />
          <Teams />
        </>
      )}
    </div>
  )
}

function OperatorSignIn() {
  const [token, setToken] = useState('')
  const [error, setError] = useState('')
  const submit = async (event: Event) => {
    event.preventDefault()
    setError('')
    try {
      await signInOperator(token)
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown))
    }
  }
  return (
    <form
      class="panel panel-body stack"
      style={{ maxWidth: '420px' }}
      onSubmit={(event) => void submit(event)}
    >
      <Field
        label="Operator's token"
        hint="The setting ATOLL_ADMIN_TOKEN of the server. The session lasts an hour."
      >
        <input
          class="input mono"
          type="password"
          autoComplete="off"
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </Field>
      {error && (
        <div class="note" role="alert">
          {error}
        </div>
      )}
      <button type="submit" class="button main">
        Continue
      </button>
    </form>
  )
}
