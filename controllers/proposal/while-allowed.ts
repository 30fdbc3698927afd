/**
 * Waits for work for as long as a signal allows, and rejects with its reason after that. The work goes on by itself: a write to a
 * repository that hangs cannot be taken back, but it must not hold up what concerns other repositories.
 */
export function whileAllowed<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
