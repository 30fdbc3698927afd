import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  readonly stageTimestamp: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly name?: string };
}

/** The requests of one user to a kube-apiserver, each once: a watch when it begins. */
export class AuditLog {
  /** Flags of the kube-apiserver with which it writes the log. */
  readonly flags: readonly string[];
  readonly #file: string;

  private constructor(folder: string) {
    this.#file = join(folder, 'audit.log');
    this.flags = [`--audit-policy-file=${join(folder, 'audit.yaml')}`, `--audit-log-path=${this.#file}`];
  }

  static async prepare(folder: string, user: string): Promise<AuditLog> {
    const log = new AuditLog(folder);
    const omitStages = ['RequestReceived'];
    const rules = [{ level: 'Metadata', users: [user], omitStages }, { level: 'None' }];
    const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules };
    await writeFile(join(folder, 'audit.yaml'), JSON.stringify(policy));
    return log;
  }

  /** Numbers of requests between two times, by verb and resource, most first. */
  async count(from: number, to: number): Promise<readonly (readonly [job: string, count: number])[]> {
    const counts = new Map<string, number>();
    for await (const line of createInterface(createReadStream(this.#file))) {
      const event = JSON.parse(line) as AuditEvent & { readonly stage: string };
      const at = Date.parse(event.stageTimestamp);
      // A watch has two stages.
      if (at < from || at >= to || (event.verb === 'watch' && event.stage !== 'ResponseStarted')) continue;
      const job = describe(event);
      counts.set(job, (counts.get(job) ?? 0) + 1);
    }
    return [...counts].sort(([, one], [, other]) => other - one);
  }
}

function describe({ verb, objectRef, requestURI }: AuditEvent): string {
  if (objectRef?.resource === undefined) return `${verb} ${requestURI.split('?')[0]}`;
  const { resource, subresource } = objectRef;
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}
