import { SluiceError } from '../../foundation/sluice-error.ts';
import type { DeepReadonly, KubernetesObject } from '../../resource/object/object.ts';

/** Annotation of a Repository: `auto`, or `git` for a server that the own client does not get on with. */
export const TRANSPORT_ANNOTATION = 'sluice.dev/transport';
/** Annotation of a Repository: the push options that its server gets with every push, as with `git push -o`; one option a line. */
export const PUSH_OPTIONS_ANNOTATION = 'sluice.dev/push-options';

const MAX_OPTIONS = 20;
const MAX_OPTION_LENGTH = 1000;

export interface RemoteSettings {
  readonly transport: 'auto' | 'git';
  readonly pushOptions: readonly string[];
}

/** Returns the transport settings of a repository. Throws InvalidInput for invalid values. */
export function remoteSettings({ metadata }: DeepReadonly<KubernetesObject>): RemoteSettings {
  const { annotations = {} } = metadata;
  const transport = annotations[TRANSPORT_ANNOTATION] ?? 'auto';
  if (transport !== 'auto' && transport !== 'git')
    throw refused(
      metadata.name,
      TRANSPORT_ANNOTATION,
      `${JSON.stringify(transport.slice(0, 100))} is neither auto nor git`,
    );
  const pushOptions = (annotations[PUSH_OPTIONS_ANNOTATION] ?? '').split('\n').filter((line) => line !== '');
  if (pushOptions.length > MAX_OPTIONS)
    throw refused(metadata.name, PUSH_OPTIONS_ANNOTATION, `more than ${MAX_OPTIONS} options`);
  if (pushOptions.some((option) => option.length > MAX_OPTION_LENGTH || /[\u0000-\u001f\u007f]/.test(option)))
    throw refused(
      metadata.name,
      PUSH_OPTIONS_ANNOTATION,
      `an option is longer than ${MAX_OPTION_LENGTH} characters or has a control character`,
    );
  return { transport, pushOptions };
}

function refused(name: string, annotation: string, why: string): SluiceError {
  return new SluiceError('InvalidInput', `repository ${name}: annotation ${annotation}: ${why}`);
}
