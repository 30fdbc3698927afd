import { timestamp } from '../../foundation/clock.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/repository.ts';
import type { Stored } from '../../resource/object.ts';
import type { Session } from '../assembly/session.ts';
import { nearMisses } from '../output/near-misses.ts';
import { printObjects } from '../output/print-objects.ts';
import { printableLines } from '../output/printable.ts';
import type { OutputFormat } from '../output/structured.ts';
import type { DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { inSession } from './in-session.ts';

export interface GetOptions extends DataOptions {
  readonly output: OutputFormat;
  readonly headers: boolean;
}

/** `sluice repo get`: each repository is opened, so that Ready says how it is now. */
export function repoGet(names: readonly string[], options: GetOptions, invocation: Invocation): Promise<Outcome> {
  return inSession(options, invocation, async (session) => {
    const wanted = names.length === 0 ? session.repositories() : names.map((name) => expectRepository(session, name));
    const shown = await Promise.all(wanted.map((object) => withStatus(session, object, invocation)));
    printObjects(invocation.terminal, repositoryKind, shown, {
      output: options.output,
      headers: options.headers,
      now: session.clock.now(),
      single: names.length === 1,
    });
    return 0;
  });
}

/** A registered repository by name; NotFound with what may have been meant. */
export function expectRepository(session: Session, name: string): Stored<Repository> {
  const found = session.repository(name);
  if (found !== undefined) return found;
  const known = session.repositories().map((object) => object.metadata.name);
  const near = nearMisses(name, known);
  const hint = near.length === 0 ? '"sluice repo get" lists what there is' : `did you mean ${near.join(' or ')}?`;
  throw new SluiceError('NotFound', `repository "${name}" is not registered; ${hint}`);
}

/** The object with the status that opening it gives. */
async function withStatus(session: Session, object: Stored<Repository>, { terminal }: Invocation): Promise<Repository> {
  const { name } = object.metadata;
  const lastTransitionTime = timestamp(session.clock.now());
  const ready = (status: 'True' | 'False', reason: string, message: string) => ({
    conditions: [{ type: 'Ready', status, reason, message, lastTransitionTime }],
  });
  try {
    await session.openSoon(name);
    const { index } = session.store.repository(name);
    const packages = new Set(session.store.list({ repository: name }).map(({ key }) => key.package));
    const status = {
      ...ready('True', 'Ready', 'Repository Ready'),
      packageCount: packages.size,
      ...(index.mainHead === undefined ? {} : { gitCommitHash: index.mainHead }),
    };
    return { ...object, status };
  } catch (error) {
    const message = messageOf(error);
    terminal.note(`${terminal.style('yellow', 'warning:', terminal.err)} ${name}: ${printableLines(message)}`);
    return { ...object, status: ready('False', 'Error', message) };
  }
}
