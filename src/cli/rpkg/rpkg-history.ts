import { historySchema } from '../../package/model/revision/revision-readings.ts';
import { inPackages } from '../access/in-packages.ts';
import { readRevision } from '../access/read-revision.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';

export interface HistoryOptions extends PlaceOptions {
  readonly limit: number;
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
}

const SHORT_COMMIT = 10;

/** `sluice rpkg history` */
export function rpkgHistory(name: string, options: HistoryOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const { entries } = await readRevision(access, name, 'history', historySchema, { limit: String(options.limit) });
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
