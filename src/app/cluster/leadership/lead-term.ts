import { messageOf } from '../../../foundation/sluice-error.ts';

export interface TermOptions {
  /** Namespace and name of the Lease. */
  readonly lease: string;
  readonly identity: string;
  /** The work of the leader, until the signal aborts. */
  readonly work: (term: AbortSignal) => Promise<void>;
  /** The holder of the Lease as far as it is known; undefined if there is none. */
  readonly holder: () => string | undefined;
  /** A request of the election that has failed lately. */
  readonly recentError: () => unknown;
  /** Called when the term ends, whatever the cause. */
  readonly onEnd: () => void;
  /** Called when the work has failed and the cause is in the log. */
  readonly onFailed: () => void;
  /** Called when the Lease was lost. The process has to end: another replica may lead now. */
  readonly onLost: () => void;
  readonly warn: (subject: string, message: string) => void;
}

/**
 * Works for one term. Failed work is reported with its cause and rejects, after which the elector releases the Lease; a term that ends
 * although the process shall not stop is a lost Lease.
 */
export async function leadTerm(options: TermOptions, term: AbortSignal, stop: AbortSignal): Promise<void> {
  const { identity, work, onEnd, onFailed, onLost, warn } = options;
  let hasFailed = false;
  const onAbort = () => {
    onEnd();
    // The elector ends the term of failed work too.
    if (hasFailed || stop.aborted) return;
    warn(identity, lostText(options));
    onLost();
  };
  term.addEventListener('abort', onAbort, { once: true });
  try {
    await work(term);
  } catch (error) {
    if (!term.aborted) {
      hasFailed = true;
      warn(identity, `cannot lead: ${messageOf(error)}; the process releases Lease ${options.lease} and ends`);
      onFailed();
    }
    throw error;
  }
}

function lostText({ lease, identity, holder, recentError }: TermOptions): string {
  const now = holder();
  const error = recentError();
  const cause =
    now === undefined
      ? 'it was deleted or released by another program'
      : now !== identity
        ? `${now} holds it now`
        : `it could not be renewed in time${error === undefined ? '' : `: ${messageOf(error)}`}`;
  return `lost Lease ${lease}: ${cause}; the process ends`;
}
