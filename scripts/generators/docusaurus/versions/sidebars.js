module.exports = {all: ['hull', 'deck/index', 'deck/mast']};
