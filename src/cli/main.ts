import { processTerminal } from './output/terminal.ts';
import { runProgram } from './program/program.ts';

// A reader that closes the pipe early (`| head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await runProgram(process.argv.slice(2), {
  terminal: processTerminal(),
  environment: process.env,
});
