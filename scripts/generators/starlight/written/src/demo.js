export const glow = () => 'warm';
