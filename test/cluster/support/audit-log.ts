import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A request of one user, as the kube-apiserver decided it. */
export interface AuditedRequest {
  readonly verb: string;
  readonly requestURI: string;
  readonly responseStatus?: { readonly code: number; readonly message?: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
}

/** The audit log of a kube-apiserver about one user. */
export class AuditLog {
  readonly flags: readonly string[];
  readonly #file: string;

  /** Its files are in a folder. */
  constructor(folder: string, user: string) {
    this.#file = join(folder, 'audit.log');
    const policy = join(folder, 'audit-policy.yaml');
    const rules = [{ level: 'Metadata', users: [user], omitStages: ['RequestReceived'] }, { level: 'None' }];
    writeFileSync(policy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules }));
    this.flags = [`--audit-policy-file=${policy}`, `--audit-log-path=${this.#file}`, '--audit-log-mode=blocking'];
  }

  /** The requests until now. */
  requests(): readonly AuditedRequest[] {
    const lines = readFileSync(this.#file, 'utf8').split('\n');
    // The last line is not complete yet.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as AuditedRequest);
  }
}
