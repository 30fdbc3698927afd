import type { Informer } from '../../controller/informer.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import type { Secret } from '../../resource/kinds/core/secret.ts';
import type { ObjectKey } from '../../resource/object/object.ts';

export interface SigningKeyWatchOptions {
  /** Of the Secret with the key. */
  readonly informer: Informer<Secret>;
  /** Throws why nothing can be signed now. */
  readonly signer: () => unknown;
  readonly openRepositories: () => readonly ObjectKey[];
  /** Has the controller of Repositories report the state of one. */
  readonly wake: (repository: ObjectKey) => void;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

/** The state of the key that signs; `stop` ends what follows it. */
export interface SigningKeyWatch {
  /** True if statements can be signed. For the metrics. */
  readonly isUsable: () => boolean;
  readonly stop: () => void;
}

/**
 * Reports once when the key that signs becomes unusable or usable again, and has all open repositories report it: nothing else would
 * show it until the next write, which fails.
 */
export function watchSigningKey(options: SigningKeyWatchOptions): SigningKeyWatch {
  const { informer, signer, openRepositories, wake, log } = options;
  const findProblem = () => {
    try {
      signer();
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  };
  let problem = findProblem();
  const stop = informer.addHandler(() => {
    const before = problem;
    problem = findProblem();
    if (problem === before) return;
    if (problem === undefined) log('info', 'statements are signed again');
    else log('warn', `${problem}; no package can be changed until the key can be used`);
    for (const repository of openRepositories()) wake(repository);
  });
  return { isUsable: () => findProblem() === undefined, stop };
}
