import { isLastingRefusal } from '../../../src/package/kernel/structure.ts';
import type { Reason } from '../../../src/package/model/revision/explanation.ts';

/** Why the kernel refuses every approval of a package until users change it, as a check and the text of a pull request have it. */
export interface LastingRefusal extends Pick<Reason, 'reason' | 'message'> {
  /** One line, of the check. */
  readonly title: string;
  /** Before the message, in the text. */
  readonly heading: string;
}

const WORDS: Readonly<Record<string, Pick<LastingRefusal, 'title' | 'heading'>>> = {
  Conflicted: {
    title: 'The package was edited on the main branch, which conflicts with the proposal',
    heading: 'Conflict with the main branch',
  },
  InvalidKptfile: {
    title: 'kpt rejects a Kptfile of the package, so that it cannot be published',
    heading: 'Invalid Kptfile',
  },
  Unreadable: {
    title: 'The package cannot be read, so that it cannot be published',
    heading: 'Unreadable package',
  },
  NestedPackage: {
    title: 'The package is above or below another one, so that it cannot be published',
    heading: 'Nested package',
  },
};

/** Such a refusal among the reasons that `sluice why` has; undefined if there is none. */
export function refusalIn(reasons: readonly Reason[]): LastingRefusal | undefined {
  const found = reasons.find(({ reason }) => isLastingRefusal(reason));
  if (found === undefined) return undefined;
  const { reason, message } = found;
  const other = { title: `It cannot be published: ${message}`, heading: 'It cannot be published' };
  return { reason, message, ...(WORDS[reason] ?? other) };
}
