package command

// commands is the table of all commands, a family a file.
func commands() table {
	return newTable(
		helloCommands(),
		parameterCommands(),
	)
}
