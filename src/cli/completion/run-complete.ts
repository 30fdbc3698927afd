import { completeNames } from './complete-names.ts';

/** Timeout in milliseconds, since a shell waits for it. */
const TIMEOUT_MS = 2000;

/** `sluice __complete <kind> <current> <words of the line…>`, which completion scripts run. It prints only names, even if it fails. */
export async function runComplete(words: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const timer = setTimeout(() => process.exit(0), TIMEOUT_MS);
  const [kind = '', current = '', ...line] = words;
  try {
    const names = await completeNames(kind, current, line, environment);
    await new Promise<void>((resolve) => {
      process.stdout.write(names.map((name) => `${name}\n`).join(''), () => resolve());
    });
  } catch (error) {
    // Errors would disturb the line that a user types; SLUICE_DEBUG prints them.
    if (environment.SLUICE_DEBUG === '1') process.stderr.write(`${String(error)}\n`);
  }
  clearTimeout(timer);
  process.exit(0);
}
