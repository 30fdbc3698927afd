// A reader that closes the pipe early (`| head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const words = process.argv.slice(2);
// A shell runs this at each Tab, so it loads only the modules that it needs.
if (words[0] === '__complete') {
  const { runComplete } = await import('./completion/run-complete.ts');
  await runComplete(words.slice(1), process.env);
}
const [{ processTerminal }, { runProgram }] = await Promise.all([
  import('./output/terminal.ts'),
  import('./program.ts'),
]);
process.exitCode = await runProgram(words, { terminal: processTerminal(), environment: process.env });
