package expr

// jsRuntime runs the JavaScript of one Env.
type jsRuntime struct{}
