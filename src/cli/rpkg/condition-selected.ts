import { mapLimited } from '../../foundation/concurrency/map-limited.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import { commandLine } from '../../foundation/text/command-line.ts';
import { counted } from '../../foundation/text/counted.ts';
import type { IssuedCondition } from '../../package/model/gates/verdict.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { writeCondition } from '../access/write-conditions.ts';
import type { CommandResult, Invocation } from '../output/invocation.ts';
import { printable, printableLines } from '../output/printable.ts';
import { isExpected } from '../output/report-error.ts';

export interface ConditionSelection {
  readonly selector: string;
  readonly repository?: string;
  readonly lifecycle?: string;
}

/** Requests at a time to one repository: a server writes those that arrive together in one push. */
const CONCURRENT_WRITES = 64;
/** Repositories at a time. */
const CONCURRENT_REPOSITORIES = 4;
/** Revisions after which the progress is reported. */
const PROGRESS_INTERVAL = 50;

/**
 * Sets a condition on all revisions that match a selector. One line reports each, in the order of their names within a repository; a failure of
 * one does not stop the others. Exit code 1 if one failed, or if none matches.
 */
export async function setOnSelected(
  access: Access,
  selection: ConditionSelection,
  condition: IssuedCondition,
  { terminal }: Invocation,
): Promise<CommandResult> {
  const byRepository = Map.groupBy(await select(access, selection), ({ spec }) => spec.repository);
  const total = [...byRepository.values()].reduce((sum, { length }) => sum + length, 0);
  if (total === 0) {
    const { selector, lifecycle = 'Proposed', repository } = selection;
    const where = repository === undefined ? '' : ` in repository ${printable(repository)}`;
    const list = commandLine([
      ...['sluice', 'rpkg', 'get', '--lifecycle', lifecycle],
      ...(repository === undefined ? [] : ['--repository', repository]),
    ]);
    terminal.note(
      `no ${printable(lifecycle)} revision matches ${printable(selector)}${where}; "${printable(list)}" lists those that there are`,
    );
    return 1;
  }
  let done = 0;
  let failures = 0;
  const set = async ({ metadata: { name } }: Stored<PackageRevision>) => {
    const failure = await attempt(access, name, condition);
    if (failure === undefined)
      terminal.line(`${printable(name)} condition ${printable(condition.type)} is ${condition.status}`);
    else {
      terminal.note(`${printable(name)} failed (${printableLines(failure)})`);
      failures += 1;
    }
    done += 1;
    if (done % PROGRESS_INTERVAL === 0 && done < total) terminal.note(`${done} of ${total} revisions`);
  };
  await mapLimited([...byRepository.values()], CONCURRENT_REPOSITORIES, (revisions) =>
    mapLimited(revisions, CONCURRENT_WRITES, set),
  );
  const failed = failures === 0 ? '' : `; ${failures} failed`;
  terminal.note(
    `condition ${printable(condition.type)} is ${condition.status} on ${counted(total - failures, 'revision')} of ${counted(byRepository.size, 'repository', 'repositories')}${failed}`,
  );
  if (failures > 0 && access.server !== undefined) terminal.note(`(server: ${printable(access.where)})`);
  return failures === 0 ? 0 : 1;
}

async function select(
  { client, namespace }: Access,
  { selector, repository, lifecycle = 'Proposed' }: ConditionSelection,
): Promise<Stored<PackageRevision>[]> {
  const fields = [
    `spec.lifecycle=${lifecycle}`,
    ...(repository === undefined ? [] : [`spec.repository=${repository}`]),
  ];
  const { items } = await client.list(packageRevisionKind, {
    ...{ namespace, labelSelector: selector, fieldSelector: fields.join(',') },
  });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** Returns why the condition was not set; undefined if it was. Throws a defect. */
async function attempt(access: Access, name: string, condition: IssuedCondition): Promise<string | undefined> {
  try {
    await writeCondition(access, name, condition);
    return undefined;
  } catch (error) {
    if (!isExpected(error)) throw error;
    return messageOf(error);
  }
}
