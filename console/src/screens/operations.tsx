export function Operations(_p: { tab?: string }) { return <h1>Operations</h1> }
