import { SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { POLICIES_CONDITION, type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { findCondition } from '../../resource/object/condition.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { inPackages } from '../access/in-packages.ts';
import { withStatus } from '../access/repository-status.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printObjects } from '../output/print-objects.ts';
import { printableLines } from '../output/printable.ts';
import type { OutputFormat } from '../output/structured.ts';

export interface GetOptions extends PlaceOptions {
  readonly output: OutputFormat;
  readonly headers: boolean;
  readonly allNamespaces?: boolean;
}

const NOT_REPORTED = 'its state was not reported yet; is the controller "repository" running?';

/** `sluice repo get`. A data folder has no status of before, so that Ready says how each repository is now. */
export function repoGet(names: readonly string[], options: GetOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const wanted =
      names.length > 0
        ? await Promise.all(names.map((name) => expectRepository(access, name)))
        : await repositoriesOf(access, options.allNamespaces === true ? undefined : access.namespace);
    const shown = await Promise.all(
      wanted.map(async (one) => {
        const { object, problem } = await withStatus(access, one);
        const label = terminal.style('yellow', 'warning:', terminal.err);
        const unread = readyOf(object) === undefined ? NOT_REPORTED : undefined;
        const text = problem ?? unread;
        if (text !== undefined) terminal.note(`${label} ${one.metadata.name}: ${printableLines(text)}`);
        const policies = findCondition(object.status?.conditions, POLICIES_CONDITION);
        if (policies?.status === 'False')
          terminal.note(`${label} ${one.metadata.name}: ${printableLines(policies.message)}`);
        return object;
      }),
    );
    printObjects(terminal, repositoryKind, shown, {
      output: options.output,
      headers: options.headers,
      now: access.clock.now(),
      alsoColumn: shown.every((one) => readyOf(one)?.status === 'True') ? undefined : 'Reason',
      showNamespace: options.allNamespaces === true && names.length === 0,
      single: names.length === 1,
    });
    return 0;
  });
}

function readyOf({ status }: Repository) {
  return findCondition(status?.conditions, 'Ready');
}

/** A registered repository by name; NotFound with what may have been meant. */
export async function expectRepository(access: Access, name: string): Promise<Stored<Repository>> {
  const found = await access.client.find(repositoryKind, { namespace: access.namespace, name });
  if (found !== undefined) return found;
  const known = (await repositoriesOf(access, access.namespace)).map((object) => object.metadata.name);
  const near = nearMisses(name, known);
  const hint = near.length === 0 ? '"sluice repo get" lists what there is' : `did you mean ${near.join(' or ')}?`;
  throw new SluiceError('NotFound', `repository "${name}" is not registered; ${hint}`);
}

/** Registered repositories by name. */
export async function repositoriesOf({ client }: Access, namespace: string | undefined): Promise<Stored<Repository>[]> {
  const { items } = await client.list(repositoryKind, namespace === undefined ? {} : { namespace });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}
