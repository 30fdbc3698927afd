import type { Answer, KubeObject } from '../../support/api/kube-api.ts';
import { MERGE_PATCH } from '../../support/api/kube-api.ts';
import type { PatientClient } from './patient-client.ts';

const VERSION = 'porch.kpt.dev/v1alpha1';

export interface LifecycleSettings {
  readonly client: PatientClient;
  readonly namespace: string;
  readonly repository: string;
  readonly packageName: string;
  readonly workspaceName: string;
  /** The workspace whose publication is copied. Without it, the package is created. */
  readonly from?: string;
  /** The last step. Default: `published`. */
  readonly until?: 'proposed' | 'published';
  /** Begins with the approval. */
  readonly isProposed?: boolean;
  /** Is called after each acknowledged step. */
  readonly onStep?: (step: Step) => void;
}

export type Step = 'created' | 'proposed' | 'published';

/**
 * Creates, proposes and approves one package revision, as a client does that repeats what failed. Returns the object after the last step. Throws if a
 * step is refused, or if a response contradicts an acknowledged step.
 */
export async function runLifecycle(settings: LifecycleSettings): Promise<KubeObject> {
  const { client, namespace, repository, packageName, workspaceName, from, onStep = () => undefined } = settings;
  const { until = 'published', isProposed = false } = settings;
  const collection = `/apis/${VERSION}/namespaces/${namespace}/packagerevisions`;
  const name = `${repository}.${packageName}.${workspaceName}`;
  const task =
    from === undefined
      ? { type: 'init', init: { description: `${packageName} of a test` } }
      : { type: 'edit', edit: { sourceRef: { name: `${repository}.${packageName}.${from}` } } };
  const spec = { repository, packageName, workspaceName, lifecycle: 'Draft', tasks: [task] };
  const body = { apiVersion: VERSION, kind: 'PackageRevision', metadata: { namespace }, spec };

  const step = async (path: string, lifecycle: string): Promise<KubeObject> => {
    for (;;) {
      const headers = { 'content-type': MERGE_PATCH };
      const { answer } = await client.send('PATCH', path, { body: { spec: { lifecycle } }, headers });
      if (answer.status !== 409) return accepted(answer, `${lifecycle} ${name}`);
    }
  };
  if (!isProposed) {
    const created = await client.send('POST', collection, { body });
    // An attempt whose response was lost may have created it.
    const exists = created.attempts > 1 && /already exists|must be unique/.test(created.answer.text);
    if (!exists) accepted(created.answer, `create ${name}`);
    onStep('created');
    const proposed = await step(`${collection}/${name}`, 'Proposed');
    onStep('proposed');
    if (until === 'proposed') return proposed;
  }
  const published = await step(`${collection}/${name}/approval`, 'Published');
  onStep('published');
  return published;
}

function accepted({ status, text, body }: Answer, what: string): KubeObject {
  if (status >= 300) throw new Error(`${what}: ${status} ${text}`);
  return body;
}
