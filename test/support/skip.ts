import type { TestOptions } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** Why a test is skipped; the reporter of the suites prints it. */
    skipReason?: string;
  }
}

/** Options of a test or of a `describe` that is skipped if there is a reason, such as a program that is not installed. */
export function skipFor(reason: string | false | undefined): Pick<TestOptions, 'skip' | 'meta'> {
  return reason === undefined || reason === false ? {} : { skip: true, meta: { skipReason: reason } };
}
