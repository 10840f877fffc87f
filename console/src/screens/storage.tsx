export function Storage(_p: { tab?: string }) { return <h1>Storage</h1> }
