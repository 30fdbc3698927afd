import { SluiceError } from '../../foundation/sluice-error.ts';
import { packageRevisionKind } from '../../resource/kinds/package-revision.ts';
import type { Session } from '../assembly/session.ts';
import { printObjects } from '../output/print-objects.ts';
import { printableLines } from '../output/printable.ts';
import type { OutputFormat } from '../output/structured.ts';
import type { DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { findRevision, inSession, openAll } from './in-session.ts';

export interface GetOptions extends DataOptions {
  readonly output: OutputFormat;
  readonly headers: boolean;
  readonly repository?: string;
  readonly name?: string;
  readonly workspace?: string;
  readonly revision?: number;
  readonly lifecycle?: string;
  readonly selector?: string;
  readonly showKptfile?: boolean;
}

/** `porchctl rpkg get --revision` takes this for any. */
const ANY_REVISION = -2;

/** `sluice rpkg get`. Exit code 1 if a repository could not be read, so that a list is never taken for complete when it is not. */
export function rpkgGet(names: readonly string[], options: GetOptions, invocation: Invocation): Promise<Outcome> {
  return inSession(options, invocation, async (session) => {
    if (options.showKptfile === true) return showKptfile(session, names, invocation);
    let failed = 0;
    if (names.length > 0) for (const name of names) await findRevision(session, name);
    else if (options.repository !== undefined) await session.openRepository(options.repository);
    else failed = await openAll(session, invocation);
    const { items } = await session.client.list(packageRevisionKind, {
      fieldSelector: fieldSelectorOf(options),
      ...(options.selector === undefined ? {} : { labelSelector: options.selector }),
    });
    const shown = names.length === 0 ? items : items.filter((item) => names.includes(item.metadata.name));
    printObjects(invocation.terminal, packageRevisionKind, shown, {
      output: options.output,
      headers: options.headers,
      now: session.clock.now(),
      single: names.length === 1,
    });
    return failed === 0 ? 0 : 1;
  });
}

function fieldSelectorOf(options: GetOptions): string {
  const fields: [string, string | undefined][] = [
    ['spec.repository', options.repository],
    ['spec.packageName', options.name],
    ['spec.workspaceName', options.workspace],
    ['spec.lifecycle', options.lifecycle],
    [
      'spec.revision',
      options.revision === undefined || options.revision === ANY_REVISION ? undefined : String(options.revision),
    ],
  ];
  return fields.flatMap(([path, value]) => (value === undefined ? [] : [`${path}=${value}`])).join(',');
}

async function showKptfile(session: Session, names: readonly string[], { terminal }: Invocation): Promise<Outcome> {
  const [name] = names;
  if (name === undefined || names.length > 1) {
    throw new SluiceError('InvalidInput', '--show-kptfile needs the name of one package revision');
  }
  const revision = await findRevision(session, name);
  const text = (await session.store.content(revision.name)).files.get('Kptfile')?.toString('utf8');
  if (text === undefined) throw new SluiceError('NotFound', `${name} has no Kptfile`);
  // A program gets the very bytes; a terminal is not steered by them.
  terminal.out.write(terminal.out.isTTY === true ? printableLines(text) : text);
  return 0;
}
