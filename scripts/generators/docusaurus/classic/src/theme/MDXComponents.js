import React from 'react';
import Original from '@theme-original/MDXComponents';

export default {...Original, Kite: {Box: ({title}) => <b>{title}</b>}};
