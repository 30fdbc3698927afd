import { revisionId } from '../../package/model/package-revision.ts';
import { inSession } from '../access/in-session.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';
import type { Invocation, Outcome, PlaceOptions } from '../program/invocation.ts';

export interface HistoryOptions extends PlaceOptions {
  readonly limit: number;
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
}

const SHORT_COMMIT = 10;

/** `sluice rpkg history` */
export function rpkgHistory(name: string, options: HistoryOptions, invocation: Invocation): Promise<Outcome> {
  return inSession('rpkg history', options, invocation, async ({ session, find }) => {
    const { terminal } = invocation;
    const revision = await find(name);
    const entries = await session.store.history(revisionId(revision), options.limit);
    if (options.output === 'json') terminal.out.write(toJson(entries));
    else if (options.output === 'yaml') terminal.out.write(toYaml(entries));
    else {
      const rows = entries.map((entry) => [
        entry.at,
        entry.face === '' ? entry.by : `${entry.by} (${entry.face})`,
        entry.action,
        entry.commit.slice(0, SHORT_COMMIT),
        entry.reason === undefined ? entry.what : `${entry.what}: ${entry.reason}`,
      ]);
      terminal.out.write(table(['When', 'Who', 'Action', 'Commit', 'What'], rows, { headers: options.headers }));
    }
    return 0;
  });
}
