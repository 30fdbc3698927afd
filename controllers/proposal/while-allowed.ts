/**
 * Waits for work until the signal aborts, and rejects with its reason then. The work itself continues, since a write to a hanging
 * repository cannot be undone, but other repositories must not wait for it.
 */
export function whileAllowed<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
