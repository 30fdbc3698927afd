import type { PullRequest } from '../../src/forge/forge.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { MAX_COMMENTS, type SharedComments } from './commands/apply-commands.ts';
import type { ShownPull } from './shown-proposals.ts';

/** The comments of a pull request that several proposals share, for one of them. */
export function sharedComments(
  entry: ShownPull,
  of: PullRequest,
  { name }: ObjectKey,
  signal: AbortSignal,
): SharedComments {
  const { pulls, number, members, executed } = entry;
  return {
    names: [...members.values()].map(({ key }) => key.name).sort(),
    read: (since) => {
      const known = entry.comments;
      if (known?.of === of && known.since === since) return known.list;
      const list = pulls.forge.comments(number, since, MAX_COMMENTS, signal);
      entry.comments = { of, since, list };
      list.catch(() => {
        delete entry.comments;
      });
      return list;
    },
    note: (one) => void executed.set(`${one.id} ${name}`, { name, executed: one }),
  };
}
