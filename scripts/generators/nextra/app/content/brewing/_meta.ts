const meta: Record<string, string> = {
  water: 'Hot water',
};

export default meta;
