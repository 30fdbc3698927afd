/** A parameter in the query of a request. */
export interface QueryParameter {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'integer';
  readonly description: string;
}

const text = (name: string, description: string): QueryParameter => ({ name, type: 'string', description });
const flag = (name: string, description: string): QueryParameter => ({ name, type: 'boolean', description });
const count = (name: string, description: string): QueryParameter => ({ name, type: 'integer', description });

/** A parameter of a sub-resource that is only read. */
export const textParameter = ({ name, description }: Pick<QueryParameter, 'name' | 'description'>): QueryParameter =>
  text(name, description);

export const PRETTY = text('pretty', 'If true, the response is indented.');

const DRY_RUN = text('dryRun', 'With All the request is checked and answered as usual, but nothing is stored.');
const FIELD_MANAGER = text('fieldManager', 'Name of the writer; it owns the fields that it writes.');
/** kubectl checks the patch operation of a kind for it: if it exists, kubectl leaves the validation to the server. */
const FIELD_VALIDATION = text(
  'fieldValidation',
  'What is done about unknown and repeated fields: Ignore drops them, Warn drops them and sends warnings, Strict refuses the request.',
);

const SELECTION: readonly QueryParameter[] = [
  text('continue', 'Where the next page of a list begins; from the metadata of the page before.'),
  text('fieldSelector', 'Only objects whose fields have these values, as in metadata.name=a.'),
  text('labelSelector', 'Only objects whose labels fit.'),
  count('limit', 'At most so many objects on a page.'),
  text('resourceVersion', 'The requested version; resourceVersionMatch determines what it means.'),
  text('resourceVersionMatch', 'How resourceVersion is compared: Exact or NotOlderThan.'),
  flag('sendInitialEvents', 'Begin a watch with the present objects, followed by a bookmark.'),
  count('timeoutSeconds', 'Timeout of the request in seconds; a watch ends then.'),
];

const LIST: readonly QueryParameter[] = [
  flag('allowWatchBookmarks', 'Send bookmarks in a watch, so that it can be resumed.'),
  ...SELECTION,
  flag('watch', 'Stream the changes instead of a list.'),
];

const CHANGE: readonly QueryParameter[] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

const DELETE: readonly QueryParameter[] = [
  DRY_RUN,
  count('gracePeriodSeconds', 'Grace period in seconds; no kind uses one.'),
  flag('orphanDependents', 'Older form of propagationPolicy=Orphan.'),
  text('propagationPolicy', 'What becomes of the objects that this one owns: Background, Foreground or Orphan.'),
];

/** The query parameters of each action. */
export const PARAMETERS = {
  list: LIST,
  get: [],
  post: CHANGE,
  put: CHANGE,
  patch: [...CHANGE, flag('force', 'Take fields over from others that own them. Only for apply patches.')],
  delete: DELETE,
  deletecollection: [...DELETE, ...SELECTION],
} as const satisfies Record<string, readonly QueryParameter[]>;
